"""Results -> text, event lines, live display, one self-contained HTML page. Pure."""
