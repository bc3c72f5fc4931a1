#!/bin/sh
# Holds ptmem's unwinder against libunwind at random stops of real programs.
# Usage: tests/verify/unwind.sh [STOPS]; MODE and CC as for make.
set -e
cd "$(dirname "$0")/../.."
stops=${1:-300} mode=${MODE:-release} cc=${CC:-gcc} failed=0
out=build/$mode/tests/verify
make MODE="$mode" CC="$cc" "build/$mode/libptmem.a"
mkdir -p "$out"
$cc -O2 -g -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter -I. -Isrc \
	tests/verify/unwind_verify.c "build/$mode/libptmem.a" -o "$out/unwind_verify" \
	$(pkg-config --libs libelf libdw libunwind-ptrace libunwind-generic) -lZydis -liberty -lz -lm

verify() {
	echo "== $1"
	timeout 300 "$out/unwind_verify" "$stops" "$@" >"$out/log" 2>/dev/null || failed=1
	cat "$out/log"
}

verify python3 -c '
import json, re
while True:
    d = {str(j): [j] * 3 for j in range(50)}
    x = json.loads(json.dumps(d))
    sorted(x, key=lambda k: int(k))
    re.sub("[0-9]", lambda m: "x", str(x))
' >&2
verify sqlite3 :memory: 'create table t(a, b);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000000)
insert into t select i, hex(randomblob(8)) from n; create index x on t(b); select count(*) from t group by b % 7;'
printf '#include <%s>\n' regex map iostream algorithm functional random future >"$out/big.cc"
echo 'std::regex r("a*b|c(d|e)+"); std::map<int, std::string> m; int main() { return std::regex_match("ab", r); }' >>"$out/big.cc"
verify "$($cc -print-prog-name=cc1plus)" -quiet -O2 "$out/big.cc" -o /dev/null -imultiarch x86_64-linux-gnu
exit $failed
