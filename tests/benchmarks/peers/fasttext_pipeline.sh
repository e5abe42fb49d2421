#!/bin/sh
# fastText's crawl pipeline (Grave et al. 2018; crawl/process_wet_file.sh of fastText), for one WET file:
#
#     fasttext_pipeline.sh all|long FASTTEXT MODEL OUT FILE
#
# Inflate, a tag for each line into a file of tags, then tags and lines together to a text file for each language.
# `all` classifies every line, the record headers among them, and drops short lines after it, as the original does.
# `long` classifies only what goclassy does: lines of pages of at least 100 code points.
# Not as in the original: nothing is downloaded; Croatian has no threshold of its own; spaces inside lines stay as they are.
set -eu
how=$1 fasttext=$2 model=$3 out=$4 file=$5
export LC_ALL=C.UTF-8
name=$(basename "$file" .warc.wet.gz)
work=$(mktemp -d "$out.work.XXXXXX")
if [ "$how" = long ]; then
    gunzip -c "$file" | LC_ALL=C sed -e '/^WARC\/1\.0\r$/,/^\r$/d' -e 's/\r$//' | grep -aE '^.{100}' > "$work/$name" || [ $? = 1 ]
else
    gunzip -c "$file" > "$work/$name"
fi
"$fasttext" predict-prob "$model" "$work/$name" > "$work/tags"
wc -l < "$work/tags" > "$out.lines.$name"
# the length is asked of lines that are sure only; mawk counts bytes, as the paper does, gawk code points
paste -d ' ' "$work/tags" "$work/$name" | awk -v "out=$out" -v "how=$how" '
    /^__label__/ && $2 >= 0.8 {
        line = substr($0, length($1) + length($2) + 3)
        if (how == "long" || length(line) > 100) print line >> (out "/" substr($1, 10) ".txt")
    }'
rm -r "$work"
