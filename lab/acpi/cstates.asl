// SPDX-License-Identifier: GPL-3.0-or-later
// What the firmware of a host that chooses its own power would say: idle states for acpi_idle, frequencies for
// acpi-cpufreq. Compile it again after a change: iasl cstates.asl
// No port here does anything. C2 and C3 read a dead port and so never sleep; their latencies are of seconds, so that
// the kernel doesn't choose them, whatever it thinks of the next interrupt.
DefinitionBlock ("cstates.aml", "SSDT", 2, "NRMTAL", "CSTATES", 1)
{
    External (\_SB.CPUS.C000, DeviceObj)
    External (\_SB.CPUS.C001, DeviceObj)
    // A host of two CPUs lacks these.
    External (\_SB.CPUS.C002, DeviceObj)
    External (\_SB.CPUS.C003, DeviceObj)

    Scope (\_SB)
    {
        // Each: register, type, latency in microseconds, power in milliwatts.
        Name (NCST, Package ()
        {
            3,
            Package () { ResourceTemplate () { Register (FFixedHW, 1, 2, 0x00, 1) }, 1, 1, 1000 },
            Package () { ResourceTemplate () { Register (SystemIO, 8, 0, 0x0900) }, 2, 3000000, 500 },
            Package () { ResourceTemplate () { Register (SystemIO, 8, 0, 0x0901) }, 3, 4000000, 100 }
        })
        // Control and status of the frequency.
        Name (NPCT, Package ()
        {
            ResourceTemplate () { Register (SystemIO, 16, 0, 0x0910) },
            ResourceTemplate () { Register (SystemIO, 16, 0, 0x0912) }
        })
        // Each: MHz, milliwatts, latencies in microseconds, control, status.
        Name (NPSS, Package ()
        {
            Package () { 3000, 20000, 10, 10, 0x01, 0x01 },
            Package () { 2500, 15000, 10, 10, 0x02, 0x02 },
            Package () { 1200, 8000, 10, 10, 0x03, 0x03 }
        })
    }

    Scope (\_SB.CPUS.C000)
    {
        Method (_CST) { Return (NCST) }
        Method (_PCT) { Return (NPCT) }
        Method (_PSS) { Return (NPSS) }
        Method (_PPC) { Return (0) }
        Name (_PSD, Package () { Package () { 5, 0, 0, 0xFE, 1 } })
    }
    Scope (\_SB.CPUS.C001)
    {
        Method (_CST) { Return (NCST) }
        Method (_PCT) { Return (NPCT) }
        Method (_PSS) { Return (NPSS) }
        Method (_PPC) { Return (0) }
        Name (_PSD, Package () { Package () { 5, 0, 1, 0xFE, 1 } })
    }
    If (CondRefOf (\_SB.CPUS.C002))
    {
        Scope (\_SB.CPUS.C002)
        {
            Method (_CST) { Return (NCST) }
            Method (_PCT) { Return (NPCT) }
            Method (_PSS) { Return (NPSS) }
            Method (_PPC) { Return (0) }
            Name (_PSD, Package () { Package () { 5, 0, 2, 0xFE, 1 } })
        }
    }
    If (CondRefOf (\_SB.CPUS.C003))
    {
        Scope (\_SB.CPUS.C003)
        {
            Method (_CST) { Return (NCST) }
            Method (_PCT) { Return (NPCT) }
            Method (_PSS) { Return (NPSS) }
            Method (_PPC) { Return (0) }
            Name (_PSD, Package () { Package () { 5, 0, 3, 0xFE, 1 } })
        }
    }
}
