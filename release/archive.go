package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// file is a file of an archive.
type file struct {
	name string
	data []byte
	mode int64
}

// archived returns a tar.gz with the files in a folder of that name. The same files and time
// give the same bytes.
func archived(folder string, files []file, made time.Time) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	for _, f := range files {
		head := &tar.Header{Name: folder + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: made, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// billOf returns the program's bill of materials (CycloneDX, JSON): the modules in its build
// information, and no others.
func billOf(info *debug.BuildInfo, program []byte, made time.Time) ([]byte, error) {
	sum := sha256.Sum256(program)
	bill := cyclonedx.NewBOM()
	bill.SerialNumber = serial(sum)
	bill.Metadata = &cyclonedx.Metadata{
		Timestamp: made.Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: "plimsoll", Type: cyclonedx.ComponentTypeApplication, Name: info.Main.Path, Version: info.Main.Version,
			Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}},
		},
	}
	var components []cyclonedx.Component
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		components = append(components, cyclonedx.Component{BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: purl})
	}
	bill.Components = &components
	var b bytes.Buffer
	encoder := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON)
	encoder.SetPretty(true)
	err := encoder.Encode(bill)
	return b.Bytes(), err
}

// serial returns a UUID (version 8, RFC 9562) made of a digest.
func serial(sum [32]byte) string {
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
