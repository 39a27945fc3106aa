# SPDX-License-Identifier: Apache-2.0
#
# tests/fuzz/fuzz_*.c: libFuzzer targets, built with clang and the address and undefined sanitizers (preset fuzz).
file(GLOB fuzzers CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
foreach(source ${fuzzers})
  get_filename_component(target ${source} NAME_WE)
  add_executable(${target} ${source})
  reel_compile(${target})
  target_link_libraries(${target} PRIVATE reel_cli reel_static)
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
endforeach()
