module fec.example/shards

go 1.21
