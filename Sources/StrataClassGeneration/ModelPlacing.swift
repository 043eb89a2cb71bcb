import Foundation
import StrataModelFiles

/// Puts a model into a bundle: unchanged, and as the compiled folder that code for Apple's platforms looks for.
package enum ModelPlacing {
    /// Copies a model, with all of its versions.
    package static func copy(_ model: URL, to destination: URL) throws {
        try write(try tree(of: model), to: destination)
    }

    /// Writes the `.momd` folder of a model, with a `.mom` for each version and the list of versions.
    ///
    /// For a model without versions, only the `.mom` is written. The list names the current version, and has the hashes
    /// and checksums of all versions, as Xcode's list does. If a version has faults, it is left out of the hashes. The
    /// versions stay XML, which the framework reads from every place where a model may be.
    package static func compile(_ model: URL, to destination: URL) throws {
        guard destination.pathExtension == "momd" else {
            return try write(try ModelPackage.contents(at: model).data, to: destination)
        }
        var files: [String: Data] = [:]
        var hashes: [String: [String: Data]] = [:]
        let current = try ModelPackage.contents(at: model).file.deletingLastPathComponent()
        for version in ModelPackage.versions(at: model) {
            let name = version.deletingPathExtension().lastPathComponent
            let data = try ModelPackage.read(version.appendingPathComponent("contents"))
            files[name + ".mom"] = data
            if let source = try? ModelSource(xml: data), source.faults.isEmpty { hashes[name] = source.versionHashes }
        }
        let list = VersionList(
            currentVersion: current.deletingPathExtension().lastPathComponent,
            hashes: hashes
        )
        files[VersionList.fileName] = try list.data()
        try write(files, to: destination)
    }

    private static func tree(of folder: URL) throws -> [String: Data] {
        var files: [String: Data] = [:]
        for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
            var isFolder: ObjCBool = false
            let file = folder.appendingPathComponent(path)
            guard FileManager.default.fileExists(atPath: file.path, isDirectory: &isFolder), !isFolder.boolValue else {
                continue
            }
            files[path] = try Data(contentsOf: file)
        }
        return files
    }

    /// Gives a folder exactly these files.
    ///
    /// Unchanged ones are not written, so that they cause no rebuild.
    private static func write(_ files: [String: Data], to folder: URL) throws {
        let manager = FileManager.default
        try manager.createDirectory(at: folder, withIntermediateDirectories: true)
        for path in try manager.subpathsOfDirectory(atPath: folder.path) where files[path] == nil {
            let isParent = files.keys.contains { $0.hasPrefix(path + "/") }
            if !isParent { try? manager.removeItem(at: folder.appendingPathComponent(path)) }
        }
        for (path, data) in files {
            let file = folder.appendingPathComponent(path)
            try manager.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try write(data, to: file)
        }
    }

    /// Writes a file unless it already has these bytes.
    package static func write(_ data: Data, to file: URL) throws {
        guard (try? Data(contentsOf: file)) != data else { return }
        try data.write(to: file)
    }
}
