# install.sed - the links of a document as they are where it is installed, beside those of doc/
s;\]\((\.\./)?doc/;](;g
s;\]\(\.github/;](;g
# What only the sources have is named, and no link.
s;\[([^]]*)\]\((\.\./)*(samples|tests)/[^)]*\);\1;g
