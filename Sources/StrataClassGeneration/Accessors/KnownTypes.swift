/// The types of managed properties from the standard library, Foundation on Linux and the framework.
enum KnownTypes {
    static func find(_ name: String, in module: String? = nil) -> MangledType? {
        if let module, !modules.contains(module) { return nil }
        return all[name]
    }

    /// The modules by which the source of a program may name these types.
    private static let modules: Set = [
        "Swift", "Foundation", "FoundationEssentials", "CoreData", "CoreDataEssentials",
    ]

    /// Generic types of the standard library, with the number of their arguments.
    static let generics = ["Array": 1, "Set": 1, "Dictionary": 2, "Optional": 1, "Range": 1, "ClosedRange": 1]

    private static let all: [String: MangledType] = {
        var types: [String: MangledType] = ["Any": .any, "AnyObject": .anyObject]
        func add(from module: String, _ kind: MangledName.Kind, _ names: String) {
            for name in names.split(separator: " ").map(String.init) {
                types[name] = .nominal(MangledName(module: module, name: name, kind: kind), [])
            }
        }
        add(
            from: "Swift",
            .struct,
            "String Int Int8 Int16 Int32 Int64 UInt UInt8 UInt16 UInt32 UInt64 Double Float Bool"
        )
        add(from: "Swift", .struct, "Character Substring StaticString Duration AnyHashable ObjectIdentifier")
        add(from: "FoundationEssentials", .struct, "Date UUID URL Data Decimal IndexPath Locale TimeZone Calendar")
        add(from: "FoundationEssentials", .struct, "DateComponents DateInterval URLComponents AttributedString")
        add(
            from: "Foundation",
            .struct,
            "IndexSet CharacterSet PersonNameComponents CGFloat CGPoint CGSize CGRect Notification"
        )
        add(
            from: "Foundation",
            .class,
            "NSObject NSString NSMutableString NSNumber NSDecimalNumber NSValue NSNull NSError"
        )
        add(
            from: "Foundation",
            .class,
            "NSDate NSData NSMutableData NSURL NSUUID NSAttributedString NSMutableAttributedString"
        )
        add(
            from: "Foundation",
            .class,
            "NSSet NSMutableSet NSCountedSet NSOrderedSet NSMutableOrderedSet NSArray NSMutableArray"
        )
        add(
            from: "Foundation",
            .class,
            "NSDictionary NSMutableDictionary NSIndexSet NSMutableIndexSet NSIndexPath NSLocale"
        )
        add(from: "Foundation", .class, "NSTimeZone NSCalendar NSDateComponents NSRegularExpression NSPredicate")
        add(
            from: "Foundation",
            .class,
            "NSSortDescriptor Unit Dimension UnitLength UnitMass UnitDuration UnitTemperature Progress"
        )
        add(from: "Foundation", .protocol, "NSCoding NSSecureCoding NSCopying")
        // The module that declares them, which is in the names of symbols; programs import `CoreData`.
        add(
            from: "CoreDataEssentials",
            .class,
            "NSManagedObject NSManagedObjectID NSManagedObjectContext NSEntityDescription"
        )
        types["TimeInterval"] = types["Double"]
        return types
    }()
}
