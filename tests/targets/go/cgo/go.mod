module cgo

go 1.19
