// Parts of pods: each writes members of the object that is being written.
#pragma once

#include "operator-hooks/desired.h"

namespace ashlar::hooks {

// Of a pod.
void WritePodSecurity(JsonWriter& out, const Desired& desired);
void WriteAffinity(JsonWriter& out, const Desired& desired);  // products and memory are terms of it
void WriteSpread(JsonWriter& out, const Desired& desired);
void WriteDeviceClaims(JsonWriter& out, const Desired& desired);
void WriteVolumes(JsonWriter& out, const Desired& desired);

// Of a container.
void WriteContainerSecurity(JsonWriter& out, bool read_only_root);
void WriteMounts(JsonWriter& out, const Desired& desired);

// The container that fills /models and ends when it is full, as an item.
void WriteDownloader(JsonWriter& out, const Desired& desired);

}  // namespace ashlar::hooks
