"""The words of the embedded corpus, as tables that are read line by line; ``entries`` explains their notation."""
