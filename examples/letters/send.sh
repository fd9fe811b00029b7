# Sends a letter to $2, once for each provider key.
mkdir -p sent
[ -e "sent/$ONCESEAL_PROVIDER_KEY" ] && exit 0
# 75 is in the contract: nothing was done.
[ -e no-paper ] && exit 75
echo "$2" > "sent/.$ONCESEAL_PROVIDER_KEY"
mv "sent/.$ONCESEAL_PROVIDER_KEY" "sent/$ONCESEAL_PROVIDER_KEY"
# The lights go out: it is sent, and nobody was told.
if rm power-cut 2>/dev/null; then kill -9 $$; fi
exit 0
