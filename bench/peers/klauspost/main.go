// One contender of bench/peers: github.com/klauspost/reedsolomon with its default matrix.
//
//	klauspost K M LEN
//
// It reads K originals of LEN bytes, writes the M recovery shards, and from then on encodes once for each byte that
// it reads and answers with the nanoseconds that took, as eight bytes.
package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"log"
	"os"
	"strconv"
	"time"
	"unsafe"

	"github.com/klauspost/reedsolomon"
)

// must ends the process on an error.
func must(err error) {
	if err != nil {
		log.Fatal("klauspost: ", err)
	}
}

// aligned makes a shard at an address divisible by 64.
func aligned(length int) []byte {
	buf := make([]byte, length+63)
	start := int(-uintptr(unsafe.Pointer(&buf[0])) % 64)
	return buf[start : start+length : start+length]
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: klauspost K M LEN")
	}
	var numbers [3]int
	for i := range numbers {
		number, err := strconv.Atoi(os.Args[i+1])
		must(err)
		numbers[i] = number
	}
	k, m, length := numbers[0], numbers[1], numbers[2]
	// Two goroutines also on one core: with one, its kernels for GFNI are off.
	encoder, err := reedsolomon.New(k, m, reedsolomon.WithMaxGoroutines(2))
	must(err)
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	shards := make([][]byte, k+m)
	for i := range shards {
		shards[i] = aligned(length)
		if i < k {
			_, err := io.ReadFull(in, shards[i])
			must(err)
		}
	}
	must(encoder.Encode(shards))
	for _, shard := range shards[k:] {
		_, err := out.Write(shard)
		must(err)
	}
	must(out.Flush())
	for {
		if _, err := in.ReadByte(); err == io.EOF {
			return
		} else {
			must(err)
		}
		began := time.Now()
		must(encoder.Encode(shards))
		nanoseconds := uint64(time.Since(began).Nanoseconds())
		must(binary.Write(out, binary.LittleEndian, nanoseconds))
		must(out.Flush())
	}
}
