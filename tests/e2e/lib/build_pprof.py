"""Builds Google's pprof from the sources that the distribution has."""

import os


def build(t):
    """Its path."""
    go, source = t.program("go"), "/usr/share/gocode/src/github.com/google/pprof"
    t.check(os.path.isdir(source), "golang-github-google-pprof-dev is installed")
    directory = t.subdirectory()
    path = os.path.join(directory, "pprof")
    built = t.run([go, "build", "-o", path, "github.com/google/pprof"], cwd=directory,
                  env={"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOCACHE": os.path.join(directory, "cache")})
    t.equal("status of the compiler: " + built.err.decode()[:300], built.status, 0)
    return path
