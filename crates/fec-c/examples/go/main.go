// Encodes a payload to 10 + 4 shards, loses four, and restores it, by fec's library for C.
//
//	PKG_CONFIG_PATH=PREFIX/lib/pkgconfig go run .
package main

/*
#cgo pkg-config: fec
#include <fec.h>
*/
import "C"

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"unsafe"
)

// failed turns a status and its sentence, which it gives back, into an error.
func failed(status C.fec_status, why *C.char) error {
	if status == C.FEC_STATUS_OK {
		return nil
	}
	defer C.fec_free_text(why)
	return fmt.Errorf("fec: status %d: %s", int(status), C.GoString(why))
}

func first(b []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.Pointer(unsafe.SliceData(b))) }

// Encode returns the root of a payload, and k + m shards of which any k restore it.
func Encode(payload []byte, k, m int) (root [32]byte, shards [][]byte, err error) {
	options := C.fec_options{k: C.uint32_t(k), m: C.uint32_t(m)}
	var made *C.fec_shards
	var why *C.char
	status := C.fec_encode(first(payload), C.size_t(len(payload)), &options, first(root[:]), &made, &why)
	if err = failed(status, why); err != nil {
		return
	}
	defer C.fec_free_shards(made)
	for i := C.size_t(0); i < C.fec_shards_count(made); i++ {
		shard := C.fec_shards_get(made, i)
		shards = append(shards, C.GoBytes(unsafe.Pointer(shard.data), C.int(shard.len)))
	}
	return
}

// Check tells whether a shard is intact and of this root.
func Check(root [32]byte, shard []byte) error {
	var why *C.char
	return failed(C.fec_verify_shard(first(root[:]), first(shard), C.size_t(len(shard)), nil, &why), why)
}

// Decode restores the payload of a root from any k intact shards, whatever else is among them.
func Decode(root [32]byte, shards [][]byte) ([]byte, error) {
	// C reads memory of Go through pointers in memory of Go, which must not move meanwhile.
	var pinner runtime.Pinner
	defer pinner.Unpin()
	inputs := make([]C.fec_bytes, len(shards)+1)
	for i, shard := range shards {
		if len(shard) > 0 {
			pinner.Pin(&shard[0])
		}
		inputs[i] = C.fec_bytes{data: first(shard), len: C.size_t(len(shard))}
	}
	var payload *C.uint8_t
	var payloadLen C.size_t
	var why *C.char
	status := C.fec_decode(&inputs[0], C.size_t(len(shards)), first(root[:]), &payload, &payloadLen, &why)
	if err := failed(status, why); err != nil {
		return nil, err
	}
	defer C.fec_free_bytes(payload, payloadLen)
	return C.GoBytes(unsafe.Pointer(payload), C.int(payloadLen)), nil
}

func run() error {
	payload := bytes.Repeat([]byte("the only copy of something, "), 5000)
	root, shards, err := Encode(payload, 10, 4)
	if err != nil {
		return err
	}
	fmt.Printf("root %x: %d shards\n", root, len(shards))
	for i, shard := range shards {
		if err := Check(root, shard); err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
	}
	shards[3][100] ^= 1
	if err := Check(root, shards[3]); err == nil {
		return fmt.Errorf("a damaged shard passed")
	}
	// Shard 3 is damaged, and 0 to 2 are lost.
	restored, err := Decode(root, shards[3:])
	if err != nil {
		return err
	}
	fmt.Printf("restored from 10 of 14: %t\n", bytes.Equal(restored, payload))
	_, err = Decode(root, shards[4:13])
	fmt.Println("from 9:", err)
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
