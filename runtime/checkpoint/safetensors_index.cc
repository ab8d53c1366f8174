#include <fmt/format.h>

#include <map>
#include <utility>

#include "checkpoint/formats.h"
#include "checkpoint/json_events.h"
#include "checkpoint/layout.h"

namespace ashlar {
namespace {

// {"metadata": anything, "weight_map": {"tensor": "file", ...}}
class IndexEvents final : public JsonEvents {
 public:
  using JsonEvents::JsonEvents;

  bool null() override { return Skipped() || JsonEvents::null(); }
  bool boolean(bool value) override { return Skipped() || JsonEvents::boolean(value); }
  bool number_integer(number_integer_t value) override {
    return Skipped() || JsonEvents::number_integer(value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Skipped() || JsonEvents::number_unsigned(value);
  }
  bool number_float(number_float_t value, const string_t& text) override {
    return Skipped() || JsonEvents::number_float(value, text);
  }

  bool string(string_t& value) override {
    if (Skipped()) return true;
    if (!in_map_) return JsonEvents::string(value);
    if (value.size() > 255) return Refuse("a file name of over 255 bytes", Allowed());
    if (files.size() == kMaxTensors)
      return Refuse("more tensors", fmt::format("at most {}", kMaxTensors));
    if (!files.emplace(key_, std::move(value)).second)
      return Refuse("the name stands twice", "each tensor once");
    return true;
  }

  bool start_object(std::size_t) override {
    if (depth_ == 1 && key_ == "weight_map") {
      if (std::exchange(has_map_, true)) return Refuse("weight_map stands twice", "one weight_map");
      in_map_ = true;
    } else if (depth_ > 0 && !Skipped()) {
      return Unexpected("an object");
    }
    return Deeper();
  }
  bool start_array(std::size_t) override {
    return depth_ > 0 && Skipped() ? Deeper() : Unexpected("an array");
  }
  bool end_array() override { return Shallower(); }
  bool end_object() override { return Shallower(); }

  bool key(string_t& name) override {
    if (depth_ == 1) section_ = name;
    key_ = std::move(name);
    if (in_map_ && key_.size() > kMaxTensorName)
      return Refuse("a long tensor name", fmt::format("at most {} bytes", kMaxTensorName));
    return true;
  }

  bool has_map() const { return has_map_; }
  std::map<std::string, std::string> files;

 private:
  std::string Where() const override { return in_map_ ? "tensor " + Shown(key_) : ""; }
  std::string Allowed() const override {
    return in_map_ ? "the name of a file" : "an object with weight_map: tensor to file";
  }

  // Everything outside weight_map belongs to other tools.
  bool Skipped() const { return depth_ > 0 && section_ != "weight_map"; }
  bool Deeper() { return ++depth_ <= 64 || Refuse("nested deeper than 64 levels", "less"); }
  bool Shallower() {
    --depth_;
    in_map_ = false;
    return true;
  }

  int depth_ = 0;
  bool in_map_ = false, has_map_ = false;
  std::string section_, key_;
};

}  // namespace

Result<std::map<std::string, std::string>> ReadSafetensorsIndex(std::string_view text,
                                                                const std::string& path) {
  if (auto problem = ZeroByte(text, path, 0)) return *problem;
  IndexEvents events(path);
  if (!Json::sax_parse(text, &events)) return events.problem();
  if (!events.has_map() || events.files.empty()) {
    return Problem{path, "no weight_map", "an object with weight_map: tensor to file",
                   std::string(kFetchAgain)};
  }
  return std::move(events.files);
}

}  // namespace ashlar
