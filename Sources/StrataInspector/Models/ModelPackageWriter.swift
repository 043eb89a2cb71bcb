import CoreData

/// Writes models as a package that Xcode opens.
enum ModelPackageWriter {
    /// Writes the XML of a model to a path.
    ///
    /// The path is that of an `.xcdatamodeld` for all versions, of an `.xcdatamodel` for the current one, or of a file.
    ///
    /// - Throws: An error if there is something already, or if the path cannot be written.
    static func write(_ source: ModelSource, to path: String) throws {
        let url = URL(fileURLWithPath: path)
        guard !FileManager.default.fileExists(atPath: url.path) else {
            throw UsageError("there is something at \(url.path) already, which is not replaced")
        }
        switch url.pathExtension {
        case "xcdatamodeld":
            for version in source.versions {
                try write(version, toFolder: url.appendingPathComponent("\(version.name).xcdatamodel"))
            }
            let current = ["_XCCurrentVersionName": "\(source.current.name).xcdatamodel"]
            let data = try PropertyListSerialization.data(fromPropertyList: current, format: .xml, options: 0)
            try data.write(to: url.appendingPathComponent(".xccurrentversion"))
        case "xcdatamodel": try write(source.current, toFolder: url)
        default: try Data(source.current.xmlText.utf8).write(to: url)
        }
    }

    private static func write(_ version: NamedModel, toFolder folder: URL) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data(version.xmlText.utf8).write(to: folder.appendingPathComponent("contents"))
    }
}
