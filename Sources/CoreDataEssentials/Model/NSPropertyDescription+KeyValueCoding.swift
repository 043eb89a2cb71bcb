import StrataPredicates

extension NSPropertyDescription: KeyValueCoding {
    /// A fact of the property by its name, for predicates with `$FETCHED_PROPERTY`: `$FETCHED_PROPERTY.userInfo.country`.
    ///
    /// - Parameter key: `name`, `entity`, `userInfo`, `isOptional`, `isTransient`, `versionHashModifier` or
    ///   `renamingIdentifier`.
    /// - Returns: The fact; `nil` for any other key.
    public final func value(forKey key: String) -> Any? {
        switch key {
        case "name": name
        case "entity": owner
        case "userInfo": userInfo
        case "isOptional", "optional": isOptional
        case "isTransient", "transient": isTransient
        case "versionHashModifier": versionHashModifier
        case "renamingIdentifier": renamingIdentifier
        default: nil
        }
    }
}
