"""What goes where, as values: wheel listings, metadata, tags, labels, index pages. Pure."""
