# SPDX-License-Identifier: Apache-2.0
#
# Finds libraries and says what a missing optional one costs. REEL_LINK collects what libreel links, REEL_INCLUDE its include folders.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
set(REEL_LINK Threads::Threads m ${CMAKE_DL_LIBS})

pkg_check_modules(jansson REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(sentencepiece REQUIRED IMPORTED_TARGET sentencepiece)
list(APPEND REEL_LINK PkgConfig::jansson PkgConfig::sentencepiece)

if(REEL_ICU)
  pkg_check_modules(icu IMPORTED_TARGET icu-uc)
  if(icu_FOUND)
    list(APPEND REEL_LINK PkgConfig::icu)
  else()
    message(FATAL_ERROR "ICU (libicu-dev) is missing. Install it, or configure with -DREEL_ICU=OFF: prompts that are not ASCII are then refused.")
  endif()
endif()

if(REEL_ONEDNN)
  find_path(DNNL_INCLUDE dnnl.h PATH_SUFFIXES oneapi/dnnl)
  find_library(DNNL_LIBRARY NAMES dnnl)
  if(NOT DNNL_INCLUDE OR NOT DNNL_LIBRARY)
    message(FATAL_ERROR "oneDNN (libdnnl-dev) is missing. Install it, or configure with -DREEL_ONEDNN=OFF: the C reference operations then run, "
                        "hundreds of times slower.")
  endif()
  list(APPEND REEL_LINK ${DNNL_LIBRARY})
endif()

if(REEL_MEDIA)
  pkg_check_modules(ffmpeg IMPORTED_TARGET libavformat libavcodec libavfilter libavutil libswscale)
  if(NOT ffmpeg_FOUND)
    message(FATAL_ERROR "FFmpeg's libraries (libavformat-dev libavcodec-dev libavfilter-dev libavutil-dev libswscale-dev) are missing. Install them, "
                        "or configure with -DREEL_MEDIA=OFF: clips can then only be written as y4m.")
  endif()
  list(APPEND REEL_LINK PkgConfig::ffmpeg)
endif()

if(REEL_THREADS STREQUAL "openmp")
  find_package(OpenMP REQUIRED COMPONENTS C)
  list(APPEND REEL_LINK OpenMP::OpenMP_C)
elseif(NOT REEL_THREADS STREQUAL "pthreads")
  message(FATAL_ERROR "REEL_THREADS is \"${REEL_THREADS}\"; allowed: openmp, pthreads")
endif()
