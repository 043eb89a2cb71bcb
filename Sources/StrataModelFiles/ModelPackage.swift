import Foundation
import StrataKeys

/// The files and folders in which a model can be stored.
package enum ModelPackage {
    /// The most bytes of a model file: far more than the largest model that is edited by hand.
    package static let maximumSize = 16 << 20

    /// The XML or the archive of the model at a URL, and the file that contains it.
    ///
    /// The URL may be that of an `.xcdatamodeld` or `.momd` folder, whose current version is read, of an `.xcdatamodel`
    /// folder, or of the file itself. For an `.omo` file, the `.mom` beside it is read.
    package static func contents(at url: URL) throws(ModelError) -> (data: Data, file: URL) {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) else {
            throw failure(.missing, at: url, because: "there is no such file")
        }
        if url.pathExtension == "omo" {
            // Xcode writes the same model twice; the optimized form is not documented.
            let plain = url.deletingPathExtension().appendingPathExtension("mom")
            guard FileManager.default.fileExists(atPath: plain.path) else {
                throw failure(
                    .unsupported,
                    at: url,
                    because: "an optimized model can only be read with the .mom beside it"
                )
            }
            return (try read(plain), plain)
        }
        guard isFolder.boolValue else { return (try read(url), url) }
        switch url.pathExtension {
        case "xcdatamodeld": return try contents(at: currentSource(of: url))
        case "momd": return try contents(at: currentCompiled(of: url))
        default: break
        }
        let file = url.appendingPathComponent("contents")
        if FileManager.default.fileExists(atPath: file.path, isDirectory: &isFolder), !isFolder.boolValue {
            return (try read(file), file)
        }
        if FileManager.default.fileExists(atPath: url.appendingPathComponent("elements").path) {
            throw failure(
                .unsupported,
                at: url,
                because: "the binary format of Xcode 3 is not supported; save the model with Xcode 4 or later"
            )
        }
        throw failure(.missing, at: url, because: "the folder has no file \"contents\"")
    }

    /// The versions in an `.xcdatamodeld` or `.momd` folder, by name; `url` itself if it is something else.
    package static func versions(at url: URL) -> [URL] {
        guard let kind = ["xcdatamodeld": "xcdatamodel", "momd": "mom"][url.pathExtension] else { return [url] }
        let entries = try? FileManager.default.contentsOfDirectory(at: url, includingPropertiesForKeys: nil)
        return (entries ?? []).filter { $0.pathExtension == kind }.sorted { $0.path < $1.path }
    }

    // MARK: - Current versions

    private static func currentSource(of url: URL) throws(ModelError) -> URL {
        try currentVersion(of: url, namedIn: ".xccurrentversion", under: "_XCCurrentVersionName") {
            $0.lastPathComponent
        }
    }

    private static func currentCompiled(of url: URL) throws(ModelError) -> URL {
        try currentVersion(of: url, namedIn: VersionList.fileName, under: VersionList.currentKey) {
            $0.deletingPathExtension().lastPathComponent
        }
    }

    /// The version that a property list names.
    ///
    /// There may be no list, or one without a name, as for a folder with one version. Then it is the version with the
    /// name of the folder, or the only one.
    private static func currentVersion(
        of url: URL,
        namedIn list: String,
        under key: String,
        name: (URL) -> String
    ) throws(ModelError) -> URL {
        let versions = versions(at: url)
        let marker = url.appendingPathComponent(list)
        if FileManager.default.fileExists(atPath: marker.path) {
            guard let entries = PropertyListSerialization.dictionary(from: try read(marker)) else {
                throw failure(.malformed, at: url, because: "its \(list) is no property list that could name a version")
            }
            if let named = entries[key] {
                // Only a name in the folder is accepted: a path in the list must not lead elsewhere.
                guard let version = versions.first(where: { name($0) == named as? String }) else {
                    throw failure(.missing, at: url, because: "its current version \"\(named)\" is not there")
                }
                return version
            }
        }
        let base = url.deletingPathExtension().lastPathComponent
        if let version = versions.first(where: { $0.deletingPathExtension().lastPathComponent == base }) {
            return version
        }
        guard let version = versions.first else { throw failure(.missing, at: url, because: "the folder has no model") }
        guard versions.count == 1 else {
            throw failure(.malformed, at: url, because: "it has several versions but no \(list) to choose one")
        }
        return version
    }

    /// The bytes of a file, if it is not larger than any model.
    package static func read(_ file: URL) throws(ModelError) -> Data {
        let handle: FileHandle
        do {
            handle = try FileHandle(forReadingFrom: file)
        } catch {
            throw failure(.malformed, at: file, because: "it cannot be read: \(error.localizedDescription)")
        }
        defer { try? handle.close() }
        // One byte more than allowed shows that a file is too large, even if it has no size, such as a device.
        let data: Data?
        do {
            data = try handle.read(upToCount: maximumSize + 1)
        } catch {
            throw failure(.malformed, at: file, because: "it cannot be read: \(error.localizedDescription)")
        }
        guard let data, !data.isEmpty else { throw failure(.malformed, at: file, because: "the file is empty") }
        guard data.count <= maximumSize else {
            throw failure(.tooLarge, at: file, because: "it is larger than \(maximumSize >> 20) MiB")
        }
        return data
    }

    private static func failure(_ kind: ModelError.Kind, at url: URL, because reason: String) -> ModelError {
        var error = ModelError(kind, reason)
        error.file = url
        return error
    }
}
