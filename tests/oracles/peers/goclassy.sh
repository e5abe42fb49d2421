#!/bin/sh
# goclassy's own program, and fastText's command line, which it calls:
#
#     sh tests/oracles/peers/goclassy.sh CHECKOUT PEER
#
# CHECKOUT is a copy of github.com/oscar-project/goclassy (commit b4eedc1), PEER a folder for the two programs. It needs
# `go` (1.19 will do), `g++` and `pip`, which brings the source of fastText.
set -eu
checkout=$1
mkdir -p "$2"
peer=$(cd "$2" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pip download --quiet --no-deps --no-binary :all: --no-build-isolation --dest "$work" fasttext==0.9.3
tar -xzf "$work"/fasttext-*.tar.gz -C "$work"
g++ -O2 -std=c++17 -pthread -include cstdint "$work"/fasttext-*/src/*.cc -o "$peer/fasttext"
cp "$checkout/main.go" "$work/main.go"
(cd "$work" && GO111MODULE=off go build -o "$peer/goclassy" main.go)
