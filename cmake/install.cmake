# SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` puts where: program, libraries, headers, pkg-config file.
include(GNUInstallDirs)
if(TARGET reel)
  install(TARGETS reel RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS reel_static reel_shared ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/reel include/reel-plugin DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
configure_file(cmake/reel.pc.in reel.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/reel.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
