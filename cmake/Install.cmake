# Where man pages and shell completions go; the tools themselves are installed where they are made (tools/).
# With TRAINWRIGHT_TOOL_PREFIX they are renamed like the tools.
foreach(section 1 5)
  file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.${section})
  foreach(page IN LISTS pages)
    get_filename_component(name ${page} NAME)
    if(section EQUAL 1)
      string(PREPEND name "${TRAINWRIGHT_TOOL_PREFIX}")
    endif()
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} RENAME ${name})
  endforeach()
endforeach()

# The completions complete commands by their plain names, so prefixed tools go without.
if(NOT TRAINWRIGHT_TOOL_PREFIX)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/completions/bash/ OPTIONAL
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/completions/zsh/ OPTIONAL
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/completions/fish/ OPTIONAL
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
