#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "checkpoint/formats.h"

namespace ashlar {
namespace {

bool StartsWithMagic(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0;
}

Result<Checkpoint> OpenByFormat(const std::string& path) {
  std::error_code ignored;  // a path that cannot be examined fails below, with its reason
  if (std::filesystem::is_directory(path, ignored)) {
    Result<std::unique_ptr<ModelFolder>> folder = OpenDiskFolder(path);
    if (!folder) return folder.problems();
    return ReadModelFolder(**folder);
  }
  Result<MappedFile> file = MappedFile::Open(path);
  if (!file) return file.problems();
  std::string_view name = path;
  if (name.ends_with(".gguf") || StartsWithMagic(file->bytes())) return ReadGguf(std::move(*file));
  if (name.ends_with(".json")) return ReadConfigAlone(*file);
  std::string next = name.ends_with(".safetensors")
                         ? "name the folder that holds it beside config.json"
                         : "convert the model to safetensors or GGUF";
  return Problem{path, "is in no format that is read here",
                 "a .gguf, a folder with config.json and *.safetensors, or a config.json", next};
}

}  // namespace

const TensorInfo* Checkpoint::Find(std::string_view name) const {
  auto at = std::lower_bound(
      tensors.begin(), tensors.end(), name,
      [](const TensorInfo& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return at != tensors.end() && at->name == name ? &*at : nullptr;
}

std::span<const std::byte> Checkpoint::Bytes(const TensorInfo& tensor) const {
  return files[tensor.file].bytes().subspan(tensor.offset, tensor.bytes);
}

int64_t Checkpoint::total_bytes() const {
  int64_t total = 0;
  for (const TensorInfo& tensor : tensors) total += static_cast<int64_t>(tensor.bytes);
  return total;
}

Result<Checkpoint> OpenCheckpoint(const std::string& path) {
  Result<Checkpoint> opened = OpenByFormat(path);
  if (opened.ok()) opened->on_disk = true;
  return opened;
}

}  // namespace ashlar
