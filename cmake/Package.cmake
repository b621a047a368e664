# SPDX-License-Identifier: Apache-2.0
# Debian packages, one per program, of what Install.cmake installs; scripts/package.sh calls cpack.
# What they depend on is read from the programs (dpkg-shlibdeps).
set(gs_about_gpushare-extender "kube-scheduler's extender: shares GPU memory between pods")
set(gs_about_gpushare-device-plugin "tells the kubelet how much GPU memory its node has")
set(gs_about_gpushare-mps "runs an MPS control daemon for each GPU of its node")
set(gs_about_kubectl-inspect-gpushare "kubectl plugin: who has which GPU's memory, and why a pod waits")
set(gs_about_gpushare-sim "embedded cluster, replay of traces, tests of placements")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR gpushare)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL ${gs_programs})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "gpushare <nobody@gpushare.invalid>")
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
foreach(program IN LISTS gs_programs)
    string(TOUPPER ${program} component)
    set(CPACK_DEBIAN_${component}_PACKAGE_NAME ${program})
    set(CPACK_DEBIAN_${component}_DESCRIPTION ${gs_about_${program}})
endforeach()
set(CPACK_DEBIAN_KUBECTL-INSPECT-GPUSHARE_PACKAGE_SUGGESTS bash-completion)
# Mozilla's certificates: of API servers whose kubeconfig names no authority.
set(CPACK_DEBIAN_KUBECTL-INSPECT-GPUSHARE_PACKAGE_RECOMMENDS ca-certificates)
include(CPack)
