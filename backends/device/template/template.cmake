# SPDX-License-Identifier: Apache-2.0
#
# The template device as a plug-in file, with src/base linked in: ${CMAKE_BINARY_DIR}/plugins/libreel-device-template.so.
add_library(reel-device-template MODULE ${CMAKE_SOURCE_DIR}/backends/device/template/plugin.c $<TARGET_OBJECTS:reel_base_objects>)
reel_compile(reel-device-template)
set_target_properties(reel-device-template PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
