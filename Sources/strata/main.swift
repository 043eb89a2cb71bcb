import CoreData
import StrataInspector

// The inspector as a program: `strata inspect`, `strata fetch` and so on. All code is in StrataInspector, which tests
// can import.
let code = StrataCommand.run(
    Array(CommandLine.arguments.dropFirst()),
    print: { Swift.print($0) },
    complain: { FileHandle.standardError.write(Data(("strata: " + $0 + "\n").utf8)) }
)
exit(code.rawValue)
