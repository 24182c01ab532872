"""What commands report, as values: ``app`` makes them, ``view`` turns them into text, ``cli`` prints either form."""
