"""The language experiment: an LSTM on the Penn Treebank."""
