# Ends the processes of a killed server, whose cluster is the working directory. Run as the cluster's account, which may
# inspect its own processes even where a container's root may not.
for process in /proc/[0-9]*; do
    [ "$process/cwd" -ef . ] && read -r name < "$process/comm" && [ "$name" = postgres ] || continue
    kill -QUIT "${process#/proc/}"
done
:
