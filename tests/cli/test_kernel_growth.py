"""What a report says of the kernel's memory that grew, beside frees of blocks that the trace does not have."""

import forge
import forge_kernel
from forge import SECOND
from forge_kernel import KERNEL, Image
from mleaktest import Case

STACK = [KERNEL + 0x1008, KERNEL + 0x2008]
EACH = 23  # blocks a second
AT = 0xffff888000000000


class KernelGrowthTest(Case):
    def growth(self, older):
        """What the report says of a stack that gets @EACH blocks a second, when so many older blocks were freed."""
        image = Image([("allocate", KERNEL + 0x1000, 64), ("caller", KERNEL + 0x2000, 64)], build_id=b"\1" * 20)
        more = [forge_kernel.allocations([STACK] * EACH, s * SECOND, at=AT + s * EACH * 4096) for s in range(2, 11)]
        if older:
            more.append(forge.losses(SECOND, 11 * SECOND, {}, {4: older}))
        trace = self.write("x.mlk", forge_kernel.trace([image], [STACK] * EACH, more=more))
        return self.mleak("report", trace).out

    def test_it_grows_if_nothing_older_was_freed(self):
        self.assertRegex(self.growth(0), r"(?m)^  growing +[+][\d.]+ MiB/h, by 1 of 1 stack$")

    def test_how_to_tell_is_something_that_can_be_done(self):
        """All allocations are recorded already."""
        self.assertRegex(self.growth(10000), r"(?m)^  unclear +1 stack grew: 10,000 older blocks were freed, of unknown "
                                             r"size, which it may replace; to tell, choose some by --comm or --cache$")
