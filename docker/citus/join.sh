# Makes a cluster of the coordinator and the nodes that are named, those that have joined already included.
set -eu

ask() {
    host=$1
    shift
    for statement in "$@"; do
        psql --quiet --no-psqlrc --set ON_ERROR_STOP=1 --host "$host" --command "$statement"
    done
}

for node in "${COORDINATOR:-coordinator}" "$@"; do
    ask "$node" 'CREATE EXTENSION IF NOT EXISTS citus' 'CREATE EXTENSION IF NOT EXISTS vector'
done
ask "${COORDINATOR:-coordinator}" "SELECT citus_set_coordinator_host('${COORDINATOR:-coordinator}', 5432)"
for node in "$@"; do
    ask "${COORDINATOR:-coordinator}" "SELECT citus_add_node('$node', 5432)"
done
