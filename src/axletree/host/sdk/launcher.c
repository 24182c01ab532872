/* Starts the program that a symbolic link would have led to: wheels have no links. The path below is relative to the
 * folder of this file; the program gets argv as it is, since some look at the name that they were called by. Without a C
 * library it starts on any kernel, whatever libraries are there. The path is put in after compiling. */

#define ROOM 4096

static const volatile char target[ROOM] = "@axletree-launcher@";

#if defined(__x86_64__)
static long call(long number, long one, long two, long three) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(one), "S"(two), "d"(three) : "rcx", "r11", "memory");
    return result;
}
enum { SYS_WRITE = 1, SYS_EXECVE = 59, SYS_EXIT = 60, SYS_READLINK = 89 };
static long readlink_self(char *to, long room) {
    return call(SYS_READLINK, (long)"/proc/self/exe", (long)to, room);
}
__asm__(".globl _start\n_start:\n xor %ebp,%ebp\n mov %rsp,%rdi\n and $-16,%rsp\n call start\n hlt\n");
#elif defined(__aarch64__)
static long call4(long number, long one, long two, long three, long four) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = one;
    register long x1 __asm__("x1") = two;
    register long x2 __asm__("x2") = three;
    register long x3 __asm__("x3") = four;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}
static long call(long number, long one, long two, long three) { return call4(number, one, two, three, 0); }
enum { SYS_WRITE = 64, SYS_EXECVE = 221, SYS_EXIT = 93, SYS_READLINKAT = 78 };
static long readlink_self(char *to, long room) {
    return call4(SYS_READLINKAT, -100, (long)"/proc/self/exe", (long)to, room);
}
__asm__(".globl _start\n_start:\n mov x29,#0\n mov x0,sp\n bl start\n");
#else
#error "launchers are known for x86_64 and aarch64"
#endif

static long length(const char *text) {
    long size = 0;
    while (text[size]) ++size;
    return size;
}

static void say(const char *text) { call(SYS_WRITE, 2, (long)text, length(text)); }

__attribute__((used, noreturn)) void start(long *stack) {
    char path[2 * ROOM];
    char **argv = (char **)(stack + 1), **environment = argv + stack[0] + 1;
    long size = readlink_self(path, ROOM - 1);
    if (size > 0) {
        while (size > 0 && path[size - 1] != '/') --size;
        for (long at = 0; (path[size] = target[at]); ++at) ++size;
        call(SYS_EXECVE, (long)path, (long)argv, (long)environment);
        say("can't start ");
        say(path);
        say(": reinstall the package that it belongs to\n");
    } else {
        say("can't find out where this program lies: /proc is not mounted\n");
    }
    call(SYS_EXIT, 127, 0, 0);
    __builtin_unreachable();
}
