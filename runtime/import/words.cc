#include "import/words.h"

#include <cctype>

#include "spec/source_text.h"

namespace ashlar {
namespace {

using Commands = std::vector<std::vector<std::string>>;

// One pass over the script. A word is open from its first character, so that "" is a word.
class Splitter {
 public:
  Splitter(std::string_view text, const std::string& place) : text_(text), place_(place) {}

  Result<Commands> Run() {
    while (at_ < text_.size()) {
      char c = text_[at_++];
      if (c == '\\') {
        Escape();
      } else if (c == '\'' || c == '"') {
        if (!Quoted(c)) return Unclosed(c);
      } else if (c == '\n' || c == ';' || c == '&' || c == '|') {
        EndCommand();
      } else if (c == ' ' || c == '\t' || c == '\r') {
        EndWord();
      } else if (c == '#' && !open_) {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        Add(c);
      }
    }
    EndCommand();
    return std::move(commands_);
  }

 private:
  void Add(char c) {
    word_ += c;
    open_ = true;
  }
  void Escape() {
    if (at_ == text_.size()) return;
    char next = text_[at_++];
    if (next != '\n') Add(next);  // a line that goes on
  }
  bool Quoted(char quote) {
    open_ = true;
    while (at_ < text_.size() && text_[at_] != quote) {
      bool escapes = quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size();
      if (escapes && std::string_view("\"\\$`\n").find(text_[at_ + 1]) != std::string_view::npos) {
        ++at_;
        if (text_[at_] == '\n') {
          ++at_;
          continue;
        }
      }
      word_ += text_[at_++];
    }
    if (at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  Problem Unclosed(char quote) const {
    return {place_, std::string("a ") + quote + " that is never closed", "quotes in pairs",
            "close the quote"};
  }
  void EndWord() {
    if (open_) words_.push_back(std::move(word_));
    word_.clear();
    open_ = false;
  }
  void EndCommand() {
    EndWord();
    if (!words_.empty()) commands_.push_back(std::move(words_));
    words_.clear();
  }

  std::string_view text_;
  const std::string& place_;
  size_t at_ = 0;
  std::string word_;
  bool open_ = false;
  std::vector<std::string> words_;
  Commands commands_;
};

bool IsNameByte(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

Result<Commands> ShellCommands(std::string_view script, const std::string& place) {
  return Splitter(script, place).Run();
}

std::string ShownWord(std::string_view word) { return word.empty() ? "\"\"" : Printable(word); }

std::string Substitute(std::string_view text, const std::map<std::string, std::string>& values,
                       bool shell) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t begin = i + 1, end = begin, next = begin;
    if (text[i] == '$' && begin < text.size()) {
      char open = text[begin];
      if (open == '(' || (shell && open == '{')) {
        end = text.find(open == '(' ? ')' : '}', ++begin);
        next = end + 1;
      } else if (shell) {
        while (end < text.size() && IsNameByte(text[end])) ++end;
        next = end;
      }
      auto value = end == text.npos ? values.end()
                                    : values.find(std::string(text.substr(begin, end - begin)));
      if (value != values.end()) {
        out += value->second;
        i = next;
        continue;
      }
    }
    out += text[i++];
  }
  return out;
}

}  // namespace ashlar
