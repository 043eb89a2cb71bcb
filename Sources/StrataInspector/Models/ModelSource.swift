import CoreData

/// One version of a model with the name that its file has.
struct NamedModel {
    let name: String
    let model: NSManagedObjectModel
    /// The text that the model was read from, if that was XML.
    var xml: String?
    /// Whether it is the copy that a store keeps.
    var isOfStore = false

    /// The model as Xcode saves it: as its file has it, if it was read from one.
    ///
    /// A model's descriptions have no place for some of what such a file says, as for the generation of classes.
    var xmlText: String { xml ?? ModelXMLWriter.text(of: model, remark: remark) }

    /// The text at the beginning of a form that can be edited.
    var remark: [String] { isOfStore ? Self.storeRemark : [] }

    private static let storeRemark = [
        "This is the copy of the model that the store keeps.",
        "Left out, if Strata made the store: validation, fetched properties, fetch requests, default values of "
            + "transformable attributes, and fetch indexes of expressions or of some rows.",
    ]
}

/// Where a model is read from: a file or folder of any form, or the copy that a store keeps.
struct ModelSource {
    /// The versions, by name.
    let versions: [NamedModel]
    /// The one that a program would use.
    let current: NamedModel

    /// Reads a model, with the classes that it names.
    ///
    /// - Parameter path: An `.xcdatamodeld`, `.xcdatamodel`, `contents`, `.momd` or `.mom`, or an SQLite store.
    /// - Throws: What reading throws, and 134020 if a store keeps no model.
    init(_ path: String) throws {
        let url = URL(fileURLWithPath: path)
        let name = Self.name(of: url)
        if Self.isStore(url) {
            let model = try NSPersistentStoreCoordinator.cachedModelForPersistentStore(
                at: url,
                options: [NSReadOnlyPersistentStoreOption: true]
            )
            current = NamedModel(name: name, model: model, isOfStore: true)
            versions = [current]
            return
        }
        let (model, xml) = try NSManagedObjectModel.reading(url)
        guard ["xcdatamodeld", "momd"].contains(url.pathExtension) else {
            current = NamedModel(name: name, model: model, xml: xml)
            versions = [current]
            return
        }
        let kind = url.pathExtension == "momd" ? "mom" : "xcdatamodel"
        let entries = try FileManager.default.contentsOfDirectory(at: url, includingPropertiesForKeys: nil)
        versions = try entries.filter { $0.pathExtension == kind }.sorted { $0.path < $1.path }
            .map { version in
                let (model, xml) = try NSManagedObjectModel.reading(version)
                return NamedModel(name: Self.name(of: version), model: model, xml: xml)
            }
        // The current version is known by what it says: the framework tells the model, not the file.
        current =
            versions.last { $0.model == model && $0.xml == xml } ?? NamedModel(name: name, model: model, xml: xml)
    }

    /// The name without extensions; for `contents` that of the folder around it.
    private static func name(of url: URL) -> String {
        let plain = url.deletingPathExtension().lastPathComponent
        guard plain == "contents", url.deletingLastPathComponent().pathExtension == "xcdatamodel" else {
            return plain.hasSuffix(".contents") ? String(plain.dropLast(9)) : plain
        }
        return url.deletingLastPathComponent().deletingPathExtension().lastPathComponent
    }

    private static func isStore(_ url: URL) -> Bool {
        guard let file = try? FileHandle(forReadingFrom: url) else { return false }
        defer { try? file.close() }
        return (try? file.read(upToCount: 16)) == Data("SQLite format 3\0".utf8)
    }
}
