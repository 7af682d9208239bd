"""Reading and writing of files of Moses and KenLM: moses.ini, n-best lists, phrase tables, alignments."""
