import Foundation
import StrataPackages

// `strata new` as a program of its own: it needs no other module of Strata, and so is built within seconds.
let usage = "Usage: strata-new NAME [--in FOLDER] [--strata FOLDER-OR-URL] [--swiftdata]"
var words = CommandLine.arguments.dropFirst()
var (name, folder, strata, usesSwiftData): (String?, String, String?, Bool) = (nil, ".", nil, false)
var isClear = true
while let word = words.popFirst() {
    switch word {
    case "--swiftdata": usesSwiftData = true
    case "--in", "--strata":
        guard let value = words.popFirst() else {
            isClear = false
            break
        }
        if word == "--in" { folder = value } else { strata = value }
    case _ where word.hasPrefix("-") || name != nil: isClear = false
    default: name = word
    }
}
guard isClear, let name else {
    print(usage)
    exit(2)
}
do {
    print(try NewPackage(name, in: folder, strata: strata, usesSwiftData: usesSwiftData).write())
} catch let error as NewPackage.Refusal {
    FileHandle.standardError.write(Data("strata-new: \(error)\n\(usage)\n".utf8))
    exit(2)
} catch {
    FileHandle.standardError.write(Data("strata-new: \(error.localizedDescription)\n".utf8))
    exit(1)
}
