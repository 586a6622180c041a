# deps PACKAGE...: installs the Debian packages that are not there yet; says
# what it does, and does nothing when all are there.
missing=
for package in "$@"; do
    case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) in
    *' installed') ;;
    *) missing="$missing $package" ;;
    esac
done
[ -z "$missing" ] && exit 0
as_root=
if [ "$(id -u)" != 0 ]; then
    as_root=sudo
    command -v sudo >/dev/null || {
        echo "deps: as root, install:$missing" >&2
        exit 6
    }
fi
run() {
    echo "deps: $*"
    "$@"
}
export DEBIAN_FRONTEND=noninteractive
run $as_root apt-get -q update &&
    run $as_root apt-get -q -y --no-install-recommends install $missing || exit 6
