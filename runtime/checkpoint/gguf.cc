#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "checkpoint/formats.h"
#include "checkpoint/gguf_cursor.h"
#include "checkpoint/gguf_types.h"
#include "checkpoint/layout.h"

namespace ashlar {
namespace {

constexpr uint32_t kVersion = 3;
constexpr uint64_t kDefaultAlignment = 32, kMaxAlignment = 1 << 20;
constexpr uint64_t kMaxString = 64 << 10, kMaxTemplate = 1 << 20, kMaxTokenizer = 64 << 20;
constexpr uint64_t kMaxKeys = 65'536;
// Of all arrays together. A string costs 32 bytes of memory beside 8 of the file, so bytes alone
// would be too weak a bound. Real tokenizers stay under 2 million.
constexpr uint64_t kMaxElements = 8 << 20;

class GgufReader {
 public:
  explicit GgufReader(const MappedFile& file) : cursor_(file.path(), file.bytes()), file_(file) {}

  std::optional<Problem> Read(Checkpoint& out) {
    ReadCounts();
    for (uint64_t i = 0; i < keys_ && !cursor_.failed(); ++i) ReadPair(out);
    if (!cursor_.failed()) CheckWhole(out);
    uint64_t alignment = Alignment(out);
    if (!cursor_.failed()) out.tensors.reserve(tensors_);
    for (uint64_t i = 0; i < tensors_ && !cursor_.failed(); ++i) ReadTensor(alignment, out);
    if (cursor_.failed()) return cursor_.problem();
    if (!refused_.empty()) return RefusedTypes();
    uint64_t start = tensors_ == 0 ? cursor_.at() : RoundUp(cursor_.at(), alignment);
    if (auto problem = PlaceTensors(start, out)) return problem;
    if (auto problem = SortByName(file_.path(), out.tensors)) return problem;
    return CheckLayout(file_.path(), out.tensors, start, file_.bytes().size(), alignment);
  }

 private:
  void ReadCounts() {
    uint32_t magic = cursor_.Take<uint32_t>();
    if (!cursor_.failed() && magic != 0x46554747) {
      return cursor_.Refuse("does not begin with the letters GGUF", "a GGUF file",
                            "name a .gguf file or a folder with config.json");
    }
    uint32_t version = cursor_.Take<uint32_t>();
    if (!cursor_.failed() && version == __builtin_bswap32(kVersion)) {
      return cursor_.Refuse("is a big-endian GGUF", "a little-endian one", "convert it again");
    }
    if (!cursor_.failed() && version != kVersion) {
      return cursor_.Refuse(fmt::format("GGUF version {}", version),
                            fmt::format("version {}", kVersion), "convert the model again");
    }
    tensors_ = cursor_.Take<uint64_t>();
    keys_ = cursor_.Take<uint64_t>();
    if (cursor_.failed()) return;
    constexpr uint64_t kLeastPair = 8 + 4 + 1, kLeastTensor = 8 + 4 + 8 + 4 + 8;
    if (tensors_ > kMaxTensors || !cursor_.CanHold(tensors_, kLeastTensor)) {
      return RefuseCount(tensors_, "tensors", kMaxTensors);
    }
    if (keys_ > kMaxKeys || !cursor_.CanHold(keys_, kLeastPair)) {
      return RefuseCount(keys_, "metadata keys", kMaxKeys);
    }
  }

  void RefuseCount(uint64_t count, std::string_view what, uint64_t limit) {
    if (count > limit) {
      cursor_.Refuse(fmt::format("{} {}", count, what), fmt::format("at most {}", limit));
    } else {
      cursor_.Refuse(
          fmt::format("{} {}, but only {} bytes follow", count, what, cursor_.remaining()),
          "a count that the file can hold", kFetchAgain);
    }
  }

  void ReadPair(Checkpoint& out) {
    cursor_.Enter("metadata");
    std::string key(cursor_.TakeString(kMaxString));
    if (cursor_.failed()) return;
    cursor_.Enter("metadata " + Shown(key));
    if (out.gguf.contains(key)) return cursor_.Refuse("the key stands twice", "each key once");
    uint32_t type = cursor_.Take<uint32_t>();
    if (!Known(type)) return;
    GgufValue value = static_cast<GgufType>(type) == GgufType::kArray
                          ? ReadArray()
                          : ReadScalar(static_cast<GgufType>(type), StringLimit(key));
    if (!cursor_.failed()) out.gguf.emplace(std::move(key), std::move(value));
  }

  static uint64_t StringLimit(std::string_view key) {
    if (key == "tokenizer.huggingface.json") return kMaxTokenizer;
    return key.starts_with("tokenizer.chat_template") ? kMaxTemplate : kMaxString;
  }

  bool Known(uint32_t type) {
    if (cursor_.failed()) return false;
    if (type < kGgufTypes.size()) return true;
    cursor_.Refuse(fmt::format("value type {}", type),
                   fmt::format("a type from 0 to {}", kGgufTypes.size() - 1));
    return false;
  }

  bool TakeBool() {
    uint8_t byte = cursor_.Take<uint8_t>();
    if (!cursor_.failed() && byte > 1) cursor_.Refuse(fmt::format("bool {}", byte), "0 or 1");
    return byte == 1;
  }

  GgufValue ReadScalar(GgufType type, uint64_t string_limit) {
    switch (type) {
      case GgufType::kUint8:
        return uint64_t{cursor_.Take<uint8_t>()};
      case GgufType::kInt8:
        return int64_t{cursor_.Take<int8_t>()};
      case GgufType::kUint16:
        return uint64_t{cursor_.Take<uint16_t>()};
      case GgufType::kInt16:
        return int64_t{cursor_.Take<int16_t>()};
      case GgufType::kUint32:
        return uint64_t{cursor_.Take<uint32_t>()};
      case GgufType::kInt32:
        return int64_t{cursor_.Take<int32_t>()};
      case GgufType::kUint64:
        return cursor_.Take<uint64_t>();
      case GgufType::kInt64:
        return cursor_.Take<int64_t>();
      case GgufType::kFloat32:
        return double{cursor_.Take<float>()};
      case GgufType::kFloat64:
        return cursor_.Take<double>();
      case GgufType::kBool:
        return TakeBool();
      case GgufType::kString:
        return std::string(cursor_.TakeString(string_limit));
      case GgufType::kArray:
        break;
    }
    Fail("ReadScalar", "arrays are read by ReadArray");
  }

  GgufValue ReadArray() {
    uint32_t number = cursor_.Take<uint32_t>();
    uint64_t count = cursor_.Take<uint64_t>();
    if (!Known(number)) return {};
    GgufType type = static_cast<GgufType>(number);
    const GgufTypeInfo& info = kGgufTypes[number];
    if (type == GgufType::kArray) {
      cursor_.Refuse("an array of arrays", "an array of numbers, strings or bools");
      return {};
    }
    if (!cursor_.CanHold(count, info.bytes)) {
      cursor_.Refuse(fmt::format("an array of {} {} values, but only {} bytes follow", count,
                                 info.name, cursor_.remaining()),
                     "a count that the file can hold", kFetchAgain);
      return {};
    }
    elements_ += count;
    if (elements_ > kMaxElements) {
      cursor_.Refuse(fmt::format("arrays of {} values in all", elements_),
                     fmt::format("at most {}", kMaxElements));
      return {};
    }
    switch (type) {
      case GgufType::kString:
        return Collect<std::string>(count,
                                    [this] { return std::string(cursor_.TakeString(kMaxString)); });
      case GgufType::kBool:
        return Collect<bool>(count, [this] { return TakeBool(); });
      case GgufType::kFloat32:
        return Collect<double>(count, [this] { return double{cursor_.Take<float>()}; });
      case GgufType::kFloat64:
        return Collect<double>(count, [this] { return cursor_.Take<double>(); });
      default:
        return Collect<int64_t>(count, [this, type] { return TakeInteger(type); });
    }
  }

  int64_t TakeInteger(GgufType type) {
    GgufValue value = ReadScalar(type, 0);
    if (const int64_t* number = std::get_if<int64_t>(&value)) return *number;
    uint64_t number = std::get<uint64_t>(value);
    if (number > static_cast<uint64_t>(INT64_MAX)) {
      cursor_.Refuse(fmt::format("array value {}", number), "at most 2^63 - 1");
    }
    return static_cast<int64_t>(number);
  }

  template <class T, class TakeOne>
  GgufValue Collect(uint64_t count, TakeOne take) {
    std::vector<T> values;
    values.reserve(count);
    for (uint64_t i = 0; i < count && !cursor_.failed(); ++i) values.push_back(take());
    return values;
  }

  // A shard's directory covers a part of the model only.
  void CheckWhole(const Checkpoint& out) {
    auto split = out.gguf.find("split.count");
    if (split == out.gguf.end()) return;
    const uint64_t* count = std::get_if<uint64_t>(&split->second);
    if (count != nullptr && *count <= 1) return;
    cursor_.Enter("metadata split.count");
    cursor_.Refuse("the file is one shard of several", "a model in one GGUF file",
                   "join the shards (llama-gguf-split --merge)");
  }

  uint64_t Alignment(const Checkpoint& out) {
    auto found = out.gguf.find("general.alignment");
    if (cursor_.failed() || found == out.gguf.end()) return kDefaultAlignment;
    const uint64_t* value = std::get_if<uint64_t>(&found->second);
    if (value != nullptr && std::has_single_bit(*value) && *value <= kMaxAlignment) return *value;
    cursor_.Enter("metadata general.alignment");
    cursor_.Refuse(value == nullptr ? "not an unsigned number" : fmt::format("{}", *value),
                   fmt::format("a power of two up to {}", kMaxAlignment));
    return kDefaultAlignment;
  }

  void ReadTensor(uint64_t alignment, Checkpoint& out) {
    cursor_.Enter("tensor directory");
    TensorInfo tensor;
    tensor.name = cursor_.TakeString(kMaxTensorName);
    if (cursor_.failed()) return;
    cursor_.Enter("tensor " + Shown(tensor.name));
    uint32_t rank = cursor_.Take<uint32_t>();
    if (!cursor_.failed() && (rank < 1 || rank > 4)) {
      return cursor_.Refuse(fmt::format("{} dimensions", rank), "1 to 4");
    }
    for (uint32_t i = 0; i < rank && !cursor_.failed(); ++i) {
      uint64_t extent = cursor_.Take<uint64_t>();
      if (!cursor_.failed() && (extent == 0 || extent > static_cast<uint64_t>(INT64_MAX))) {
        return cursor_.Refuse(fmt::format("a dimension of {}", extent), "1 to 2^63 - 1");
      }
      tensor.shape.push_back(static_cast<int64_t>(extent));
    }
    std::reverse(tensor.shape.begin(), tensor.shape.end());  // the file has the innermost first
    uint32_t number = cursor_.Take<uint32_t>();
    tensor.offset = cursor_.Take<uint64_t>();
    if (cursor_.failed()) return;
    if (tensor.offset % alignment != 0) {
      return cursor_.Refuse(fmt::format("offset {}", tensor.offset),
                            fmt::format("a multiple of the alignment, {}", alignment));
    }
    std::optional<DType> dtype = TensorType(number, tensor.name);
    if (!dtype) return;
    tensor.dtype = *dtype;
    std::optional<int64_t> count = CheckedProduct(tensor.shape);
    std::optional<int64_t> bytes;
    if (count && tensor.shape.back() % Info(*dtype).elements == 0) {
      bytes = StorageBytes(*dtype, *count);
    }
    if (!bytes) {
      return cursor_.Refuse(
          fmt::format("shape {} of {}", ShownShape(tensor.shape), Info(*dtype).name),
          fmt::format("rows of a multiple of {} values, less than 2^63 bytes in all",
                      Info(*dtype).elements));
    }
    tensor.bytes = static_cast<uint64_t>(*bytes);
    out.tensors.push_back(std::move(tensor));
  }

  // Tensors of types that are not supported are counted, so that one message speaks of all.
  std::optional<DType> TensorType(uint32_t number, const std::string& name) {
    auto row = std::find_if(kGgufTensorTypes.begin(), kGgufTensorTypes.end(),
                            [number](const GgufTensorType& t) { return t.number == number; });
    bool known = row != kGgufTensorTypes.end();
    if (known && row->dtype) return row->dtype;
    if (refused_.empty()) first_refused_ = name;
    ++refused_[known ? std::string(row->name) : fmt::format("number {}", number)];
    return std::nullopt;
  }

  Problem RefusedTypes() const {
    std::vector<std::string> found, supported;
    constexpr size_t kShown = 5;
    for (const auto& [type, count] : refused_) {
      if (found.size() == kShown) {
        found.push_back("and more");
        break;
      }
      found.push_back(fmt::format("type {} ({} tensor{})", type, count, count == 1 ? "" : "s"));
    }
    for (const GgufTensorType& type : kGgufTensorTypes) {
      if (type.dtype) supported.emplace_back(type.name);
    }
    return {fmt::format("{} tensor {}", file_.path(), Shown(first_refused_)),
            fmt::format("{} not supported", fmt::join(found, ", ")),
            fmt::format("{}", fmt::join(supported, ", ")), "use a file quantized to one of these"};
  }

  // Offsets of the directory count from the start of the data; TensorInfo's from that of the file.
  std::optional<Problem> PlaceTensors(uint64_t start, Checkpoint& out) {
    for (TensorInfo& tensor : out.tensors) {
      std::optional<uint64_t> from = CheckedAdd(start, tensor.offset);
      std::optional<uint64_t> to = from ? CheckedAdd(*from, tensor.bytes) : std::nullopt;
      if (!to || *to > static_cast<uint64_t>(INT64_MAX)) {
        return Problem{fmt::format("{} tensor {}", file_.path(), Shown(tensor.name)),
                       fmt::format("offset {} and {} bytes", tensor.offset, tensor.bytes),
                       fmt::format("an end within the {} bytes of the file", file_.bytes().size()),
                       std::string(kDamaged)};
      }
      tensor.offset = *from;
    }
    return std::nullopt;
  }

  GgufCursor cursor_;
  const MappedFile& file_;
  uint64_t tensors_ = 0, keys_ = 0, elements_ = 0;
  std::map<std::string, int64_t> refused_;
  std::string first_refused_;
};

}  // namespace

Result<Checkpoint> ReadGguf(MappedFile file) {
  Checkpoint out;
  out.format = Checkpoint::Format::kGguf;
  out.path = file.path();
  if (std::optional<Problem> problem = GgufReader(file).Read(out)) return *problem;
  out.files.push_back(std::move(file));
  return out;
}

}  // namespace ashlar
