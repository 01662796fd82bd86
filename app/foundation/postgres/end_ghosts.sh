# Ends the servers of a cluster, $1, whose folder was deleted. Such a server notices that within a minute and then
# removes the socket at its old path, which may be the new server's by then.
for process in /proc/[0-9]*; do
    [ "$(readlink "$process/cwd")" = "$1 (deleted)" ] && read -r name < "$process/comm" || continue
    [ "$name" = postgres ] && kill -QUIT "${process#/proc/}" && ghosts="$ghosts $process"
done
for ghost in $ghosts; do
    tries=0
    while [ -e "$ghost/cwd" ] && [ "$tries" -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
done
