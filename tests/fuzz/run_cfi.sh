#!/bin/sh
# Damages the CFI of small libraries and unwinds with it; see fuzz_cfi.c.
# Usage: tests/fuzz/run_cfi.sh [ROUNDS [SEED]]; MODE and CC as for make.
set -e
cd "$(dirname "$0")/../.."
rounds=${1:-500} seed=${2:-1} mode=${MODE:-asan} cc=${CC:-gcc} sanitize=
[ "$mode" = asan ] && sanitize=-fsanitize=address,undefined
out=build/$mode/tests/fuzz
make MODE="$mode" CC="$cc" "build/$mode/libptmem.a"
mkdir -p "$out"
$cc -O1 -g -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter -I. -Isrc $sanitize \
	tests/fuzz/fuzz_cfi.c "build/$mode/libptmem.a" -o "$out/fuzz_cfi" \
	$(pkg-config --libs libelf libdw libunwind-ptrace libunwind-generic) -lZydis -lz
for library in libuuid.so.1 libz.so.1; do
	file=$(ldconfig -p | sed -n "s/.*$library .*=> //p" | head -n 1)
	[ -f "$file" ] || { echo "skipped: no $library here"; continue; }
	echo "== $file"
	"$out/fuzz_cfi" "$file" "$rounds" "$seed"
done
