module ashlar.dev/tests/bench/hooks

go 1.26
