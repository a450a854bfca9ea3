package network

import (
	"fmt"
	"math"

	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/system"
)

// lossProgram drops packets: the kernel's scheduler for it (netem) is rarely there.
func lossProgram() proc.Program {
	return proc.Program{Name: "nft", Package: "nftables", For: "loss"}
}

// lose lets client and server drop a share of the TCP segments that reach them, at
// random. Packets of tunnels are not TCP's: none is dropped twice.
func (n *network) lose() error {
	if n.loss == 0 {
		return nil
	}
	paths, missing := proc.Look("loss", "", []proc.Program{lossProgram()})
	if err := missing.Err(); err != nil {
		return system.Lacking(err, "")
	}
	const of = 100_000
	rules := fmt.Sprintf("add table ip loss; add chain ip loss input { type filter hook input priority 0; }; add rule ip loss input meta l4proto tcp numgen random mod %d < %d drop", of, int(math.Round(n.loss*of)))
	for _, m := range []*machine.Machine{n.client, n.server} {
		p, err := m.Start(m.Command(paths["nft"], rules), proc.How{Name: "nft"})
		if err == nil {
			err = p.Wait()
		}
		if err != nil {
			return &system.UnableError{Err: fmt.Errorf("drop packets at random: %w", err), Hint: "the kernel needs CONFIG_NF_TABLES and CONFIG_NFT_NUMGEN"}
		}
	}
	return nil
}
