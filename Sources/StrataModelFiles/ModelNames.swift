/// The rules for names of entities and properties.
package enum ModelNames {
    /// The problem of a name of something, such as "a property"; `nil` if it can be used.
    package static func fault(_ name: String, of what: String) -> String? {
        guard !name.isEmpty else { return "\(what) has no name" }
        let isWord = name.unicodeScalars.allSatisfy {
            $0 == "_" || $0.properties.isAlphabetic || $0.properties.numericType != nil
        }
        let startsWell = name.unicodeScalars.first.map { $0 == "_" || $0.properties.isAlphabetic } ?? false
        guard isWord, startsWell, name.utf8.count <= 255 else {
            return
                "the name of \(what) must start with a letter and have letters, digits and underscores only: \"\(name)\""
        }
        return nil
    }

    /// The problem of a property's name as a member of a class; `nil` if it can be used.
    package static func memberFault(_ name: String) -> String? {
        reserved.contains(name)
            ? "the name is reserved, for managed objects have a member of that name; rename it" : nil
    }

    /// The members of a managed object that a property of the same name would hide.
    private static let reserved: Set<String> = [
        "autorelease", "changedValues", "changedValuesForCurrentEvent", "class", "classForCoder", "copy", "dealloc",
        "debugDescription", "description", "entity", "faultingState", "finalize", "hasChanges",
        "hasPersistentChangedValues", "hash", "init", "isDeleted", "isFault", "isInserted", "isProxy", "isUpdated",
        "managedObjectContext", "mutableCopy", "objectID", "observationInfo", "release", "retain", "retainCount",
        "self", "superclass", "willSave", "didSave", "zone",
    ]
}
