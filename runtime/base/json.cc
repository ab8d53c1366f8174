#include "base/json.h"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <vector>

namespace ashlar {
namespace {

// Builds the value from SAX events so that each limit holds before memory is spent on what breaks
// it.
class LimitedBuilder final : public nlohmann::json_sax<Json> {
 public:
  LimitedBuilder(std::string_view place, const JsonLimits& limits)
      : place_(place), limits_(limits) {}

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(number_integer_t value) override { return AddInteger(value); }
  bool number_unsigned(number_unsigned_t value) override { return AddInteger(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    if (!std::isfinite(value))
      return Refuse(fmt::format("number {} is out of range", text), "a number that a double holds");
    return Add(value);
  }
  bool string(string_t& value) override { return Add(std::move(value)); }
  bool binary(binary_t&) override { return Refuse("binary value", "JSON text"); }
  bool start_object(std::size_t) override { return Open(Json::object()); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }

  bool key(string_t& name) override {
    if (!names_.back().insert(name).second)
      return Refuse(fmt::format("name \"{}\" stands twice in one object", name), "each name once");
    key_ = name;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    std::string what = error.what();
    if (size_t colon = what.rfind(": ");
        what.find("syntax error") != std::string::npos && colon != std::string::npos) {
      what = what.substr(what.find("syntax error"));
    }
    problem_ = {fmt::format("{} byte {}", place_, position), what, "one JSON value in UTF-8",
                "mend the text there"};
    return false;
  }

  Json root;
  Problem problem_;

 private:
  template <class Integer>
  bool AddInteger(Integer value) {
    bool in_array = !open_.empty() && open_.back()->is_array();
    sixteenths_ += in_array ? 1 : 16;
    return Place(value) != nullptr;
  }

  template <class Value>
  bool Add(Value&& value) {
    sixteenths_ += 16;
    return Place(std::forward<Value>(value)) != nullptr;
  }

  template <class Value>
  Json* Place(Value&& value) {
    if (sixteenths_ > limits_.values * 16) {
      Refuse("too many values", fmt::format("at most {} values", limits_.values));
      return nullptr;
    }
    if (open_.empty()) {
      root = std::forward<Value>(value);
      return &root;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::forward<Value>(value));
      return &open_.back()->back();
    }
    // `names_` has seen that the key is new: appending spares the map its walk over all others.
    std::vector<std::pair<const std::string, Json>>& members =
        *open_.back()->get_ptr<Json::object_t*>();
    return &members.emplace_back(key_, std::forward<Value>(value)).second;
  }

  bool Open(Json container) {
    if (static_cast<int>(open_.size()) >= limits_.depth) {
      return Refuse(fmt::format("nested deeper than {} levels", limits_.depth),
                    fmt::format("at most {} levels", limits_.depth));
    }
    sixteenths_ += 16;
    Json* placed = Place(std::move(container));
    if (placed == nullptr) return false;
    open_.push_back(placed);
    names_.emplace_back();
    return true;
  }

  bool Close() {
    open_.pop_back();
    names_.pop_back();
    return true;
  }

  bool Refuse(std::string found, std::string allowed) {
    problem_ = {std::string(place_), std::move(found), std::move(allowed), "shorten or mend it"};
    return false;
  }

  std::string_view place_;
  const JsonLimits& limits_;
  std::vector<Json*>
      open_;  // containers from the root to the innermost; a child never moves while it is open
  std::vector<std::set<std::string>> names_;
  std::string key_;
  int64_t sixteenths_ = 0;
};

void WriteCanonical(const Json& value, std::string& out) {
  if (value.is_object()) {
    std::vector<std::pair<std::string, const Json*>> members;
    for (const auto& [name, member] : value.items()) {
      if (!member.is_null()) members.emplace_back(name, &member);
    }
    std::sort(members.begin(), members.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    out += '{';
    for (size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out += ',';
      out += Json(members[i].first).dump();
      out += ':';
      WriteCanonical(*members[i].second, out);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out += ',';
      WriteCanonical(value[i], out);
    }
    out += ']';
  } else if (value.is_number_float() && value.get<double>() == std::floor(value.get<double>()) &&
             std::abs(value.get<double>()) < 9007199254740992.0) {
    out += std::to_string(static_cast<int64_t>(value.get<double>()));  // 1.0 and 1 are one number
  } else {
    out += DumpJson(value);
  }
}

}  // namespace

Result<Json> ParseJson(std::string_view text, std::string_view place, const JsonLimits& limits) {
  if (size_t zero = text.find('\0'); zero != std::string_view::npos) {
    // The library takes it for the end of the text.
    return Problem{fmt::format("{} byte {}", place, zero + 1), "a zero byte",
                   "one JSON value in UTF-8", "mend the text there"};
  }
  LimitedBuilder builder(place, limits);
  if (!Json::sax_parse(text, &builder)) return builder.problem_;
  return std::move(builder.root);
}

std::string CanonicalJson(const Json& value) {
  std::string out;
  WriteCanonical(value, out);
  return out;
}

std::string DumpJson(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ashlar
