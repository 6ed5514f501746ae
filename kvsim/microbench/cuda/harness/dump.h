// Outputs as files for somebody else to check: raw elements, in the order in which they were verified.
#pragma once
#include <cstdio>
#include <string>
#include <vector>

#include "session.h"

// Appends to DIR/BENCH.bin; nothing without --dump.
template <class T>
void dump(const Session& session, const char* bench, const std::vector<T>& values) {
  if (session.dump.empty()) return;
  const std::string path = session.dump + "/" + bench + ".bin";
  std::FILE* file = std::fopen(path.c_str(), "ab");
  const size_t written = file ? std::fwrite(values.data(), sizeof(T), values.size(), file) : 0;
  if ((file && std::fclose(file)) || written != values.size()) throw Failure{"dump", 1, path + ": cannot be written"};
}
