module heap

go 1.19
