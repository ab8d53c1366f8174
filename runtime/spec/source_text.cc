#include "spec/source_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace ashlar {
namespace {

// Place of a byte, counted from 1 in lines and bytes, as editors and yaml-cpp count.
struct Cursor {
  int line = 1;
  int column = 1;
  bool in_indent = true;
  std::string At(const std::string& name) const {
    return fmt::format("{}:{}:{}", name, line, column);
  }
};

}  // namespace

size_t Utf8SequenceBytes(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (text.empty()) return 0;
  uint8_t first = byte(0);
  if (first < 0x80) return 1;
  size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  uint8_t second = byte(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
    return 0;
  }
  return size;
}

bool IsControl(std::string_view sequence) {
  uint8_t first = static_cast<uint8_t>(sequence[0]);
  if (sequence.size() == 1) {
    return first == 0x7f || (first < 0x20 && first != '\t' && first != '\n' && first != '\r');
  }
  return first == 0xc2 && static_cast<uint8_t>(sequence[1]) < 0xa0;
}

Problems CheckSourceText(std::string_view text, const std::string& name) {
  if (text.size() > kSpecDocumentBytes) {
    return {{name, fmt::format("{} bytes", text.size()),
             fmt::format("at most {} bytes", kSpecDocumentBytes),
             "shorten the document; weights and tokenizers stay in their own files"}};
  }
  Problems problems;
  bool control_told = false, tab_told = false;
  Cursor cursor;
  for (size_t i = 0; i < text.size();) {
    size_t size = Utf8SequenceBytes(text.substr(i));
    if (size == 0) {
      problems.push_back({cursor.At(name),
                          fmt::format("byte 0x{:02x} is not UTF-8", static_cast<uint8_t>(text[i])),
                          "text in UTF-8", "save the file as UTF-8"});
      return problems;  // what follows cannot be told apart into characters
    }
    char c = text[i];
    if (IsControl(text.substr(i, size)) && !control_told) {
      control_told = true;
      problems.push_back({cursor.At(name),
                          fmt::format("control character {}", Printable(text.substr(i, size))),
                          "printable characters and line ends", "delete it"});
    }
    if (c == '\t' && cursor.in_indent && !tab_told) {
      tab_told = true;
      problems.push_back({cursor.At(name), "a tab in the indentation", "spaces, as YAML requires",
                          "replace the tab with spaces"});
    }
    if (c == '\n') {
      cursor = {.line = cursor.line + 1, .column = 1, .in_indent = true};
    } else {
      cursor.column += static_cast<int>(size);
      cursor.in_indent = cursor.in_indent && (c == ' ' || c == '\t');
    }
    i += size;
  }
  return problems;
}

std::string Printable(std::string_view text, size_t limit) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (out.size() >= limit) return out + "...";
    size_t size = Utf8SequenceBytes(text.substr(i));
    std::string_view sequence = text.substr(i, size == 0 ? 1 : size);
    bool plain = size > 0 && !IsControl(sequence) && sequence != "\n" && sequence != "\r" &&
                 sequence != "\t";
    if (plain) {
      out += sequence;
    } else {
      for (char c : sequence) {
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<uint8_t>(c));
      }
    }
    i += sequence.size();
  }
  return out;
}

}  // namespace ashlar
