// JSON Lines: one object a line, written and flushed at once, so that a run cut short leaves whole lines.
#pragma once
#include <cmath>
#include <cstdio>
#include <string>
#include <type_traits>

class Json {
 public:
  Json& add(const char* key, const std::string& text) { return raw(key, quoted(text)); }
  Json& add(const char* key, const char* text) { return add(key, std::string(text)); }
  Json& add(const char* key, bool value) { return raw(key, value ? "true" : "false"); }
  Json& add(const char* key, double value) {
    if (!std::isfinite(value)) return null(key);  // NaN and infinity are not JSON
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return raw(key, text);
  }
  template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
  Json& add(const char* key, T value) {
    return raw(key, std::to_string(value));
  }
  Json& add(const char* key, const Json& object) { return raw(key, object.text()); }
  Json& null(const char* key) { return raw(key, "null"); }
  Json& append(const Json& other) {
    if (!other.body_.empty()) body_ += (body_.empty() ? "" : ", ") + other.body_;
    return *this;
  }
  std::string text() const { return "{" + body_ + "}"; }

 private:
  Json& raw(const char* key, const std::string& value) {
    body_ += (body_.empty() ? "" : ", ") + quoted(key) + ": " + value;
    return *this;
  }
  static std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      char escaped[8];
      if (static_cast<unsigned char>(c) < 0x20) {
        std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
        out += escaped;
      } else {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
      }
    }
    return out + "\"";
  }
  std::string body_;
};

class Lines {
 public:
  explicit Lines(std::FILE* file) : file_(file) {}
  // False once the file could not be written.
  bool write(const Json& line) {
    good_ = good_ && std::fprintf(file_, "%s\n", line.text().c_str()) > 0 && std::fflush(file_) == 0;
    return good_;
  }
  bool good() const { return good_; }

 private:
  std::FILE* file_;
  bool good_ = true;
};
