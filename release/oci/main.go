// Writes OCI layouts: of an image for some platforms, and of a chart. The same input gives the same bytes.
//
//	oci image CONFIG.json EPOCH OUT linux/amd64=LAYER.tar linux/arm64=LAYER.tar...
//	oci chart Chart.yaml CHART.tgz OUT
//
// Each prints the digest of what is to be pulled.
package main

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// The media types by which helm recognises a chart.
const (
	helmConfig types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	helmChart  types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "oci:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) >= 5 && args[0] == "image":
		return writeImage(args[1], args[2], args[3], args[4:])
	case len(args) == 4 && args[0] == "chart":
		return writeChart(args[1], args[2], args[3])
	}
	return errors.New("expected `image CONFIG EPOCH OUT PLATFORM=LAYER...` or `chart METADATA CHART OUT`")
}

// writeImage writes an index with an image of one layer for each platform.
func writeImage(config, epoch, out string, layers []string) error {
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	var runs v1.Config
	if err := json.Unmarshal(text, &runs); err != nil {
		return fmt.Errorf("%s: %w", config, err)
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return err
	}
	created := v1.Time{Time: time.Unix(seconds, 0).UTC()}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, pair := range layers {
		platform, path, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("%q is not PLATFORM=LAYER", pair)
		}
		parsed, err := v1.ParsePlatform(platform)
		if err != nil {
			return err
		}
		image, err := imageOf(path, parsed, runs, created)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: parsed},
		})
	}
	annotated, ok := mutate.Annotations(index, runs.Labels).(v1.ImageIndex)
	if !ok {
		return errors.New("an index with annotations is no index")
	}
	folder, err := layout.Write(out, empty.Index)
	if err != nil {
		return err
	}
	if err := folder.AppendIndex(annotated); err != nil {
		return err
	}
	return printDigest(annotated)
}

func imageOf(path string, platform *v1.Platform, runs v1.Config, created v1.Time) (v1.Image, error) {
	layer, err := tarball.LayerFromFile(path,
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.BestCompression))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: created, CreatedBy: "make release"},
	})
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant = platform.OS, platform.Architecture, platform.Variant
	file.Created, file.Config = created, runs
	return mutate.ConfigFile(image, file)
}

// writeChart writes what `helm push` would push, without the time at which it was pushed.
func writeChart(metadata, chart, out string) error {
	text, err := os.ReadFile(metadata)
	if err != nil {
		return err
	}
	config, err := yaml.YAMLToJSON(text)
	if err != nil {
		return fmt.Errorf("%s: %w", metadata, err)
	}
	var named struct{ Name, Version, Description string }
	if err := json.Unmarshal(config, &named); err != nil {
		return fmt.Errorf("%s: %w", metadata, err)
	}
	archive, err := os.ReadFile(chart)
	if err != nil {
		return err
	}
	folder, err := layout.Write(out, empty.Index)
	if err != nil {
		return err
	}
	manifest, err := chartManifest(folder, config, archive)
	if err != nil {
		return err
	}
	manifest.Annotations = map[string]string{
		"org.opencontainers.image.title":       named.Name,
		"org.opencontainers.image.version":     named.Version,
		"org.opencontainers.image.description": named.Description,
	}
	raw, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	written, err := writeBlob(folder, raw, types.OCIManifestSchema1)
	if err != nil {
		return err
	}
	if err := folder.AppendDescriptor(written); err != nil {
		return err
	}
	fmt.Println(written.Digest)
	return nil
}

func chartManifest(folder layout.Path, config, archive []byte) (*v1.Manifest, error) {
	configured, err := writeBlob(folder, config, helmConfig)
	if err != nil {
		return nil, err
	}
	layer, err := writeBlob(folder, archive, helmChart)
	if err != nil {
		return nil, err
	}
	return &v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		Config:        configured,
		Layers:        []v1.Descriptor{layer},
	}, nil
}

func writeBlob(folder layout.Path, content []byte, mediaType types.MediaType) (v1.Descriptor, error) {
	blob := static.NewLayer(content, mediaType)
	digest, err := blob.Digest()
	if err != nil {
		return v1.Descriptor{}, err
	}
	reader, err := blob.Compressed()
	if err != nil {
		return v1.Descriptor{}, err
	}
	described := v1.Descriptor{MediaType: mediaType, Size: int64(len(content)), Digest: digest}
	return described, folder.WriteBlob(digest, reader)
}

func printDigest(index v1.ImageIndex) error {
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Println(digest)
	return nil
}
