"""Rules about hosts: can this machine build, or run, what is wanted?"""
