"""Files of Moses and KenLM, read and written: moses.ini, n-best lists, phrase tables, alignments."""
